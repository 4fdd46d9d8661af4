# An image for clusters of containers:   docker build -t fedgraph .
# GPU machines: docker build --build-arg FLAVOUR=gpu -t fedgraph-gpu .
ARG FLAVOUR=cpu
FROM rayproject/ray:2.60.0-py311-${FLAVOUR}
ARG FLAVOUR
COPY --chown=ray . /home/ray/fedgraph
# without CUDA's libraries; the pins stay the same
RUN if [ "$FLAVOUR" = cpu ]; then pip install --quiet --no-cache-dir --index-url https://download.pytorch.org/whl/cpu \
        "$(grep '^torch==' /home/ray/fedgraph/constraints.txt)"; fi
RUN pip install --quiet --no-cache-dir -c /home/ray/fedgraph/constraints.txt '/home/ray/fedgraph[cluster]'
ENV OMP_NUM_THREADS=1
