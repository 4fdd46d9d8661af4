def degree_features(collection, max_degree):
    return collection
