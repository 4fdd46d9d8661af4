# An image for clusters of containers:   docker build -t fedgraph .
# GPU machines: docker build --build-arg FLAVOUR=gpu -t fedgraph-gpu .
ARG FLAVOUR=cpu
FROM rayproject/ray:2.60.0-py311-${FLAVOUR}
ARG FLAVOUR
# PyTorch's index of wheels without CUDA's libraries, or a copy of it
ARG TORCH_CPU=https://download.pytorch.org/whl/cpu
COPY --chown=ray . /home/ray/fedgraph
RUN if [ "$FLAVOUR" = cpu ]; then pip install --quiet --no-cache-dir --index-url "$TORCH_CPU" \
        "$(grep '^torch==' /home/ray/fedgraph/constraints.txt)"; fi
RUN pip install --quiet --no-cache-dir -c /home/ray/fedgraph/constraints.txt '/home/ray/fedgraph[cluster]'
ENV OMP_NUM_THREADS=1
