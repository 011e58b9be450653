# A reranker behind HTTP: kernels compiled, no root, nothing written at run time.
#
#   docker build -t didyma .
#   docker run --read-only -p 127.0.0.1:8000:8000 -v "$PWD/models:/models:ro" -e DIDYMA_TOKENS=secret didyma
#
# serves models/model.didyma.safetensors; what follows the name of the image is a command of didyma.

FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE.md ./
COPY src src
RUN python -m venv /opt/didyma \
    && /opt/didyma/bin/pip install --no-cache-dir --constraint constraints.txt ".[serve]"
# Compiled for any processor of this architecture: a cache for another one would not be used.
ARG CPU=generic
ENV NUMBA_CPU_NAME=$CPU NUMBA_CACHE_DIR=/opt/didyma/cache
RUN /opt/didyma/bin/didyma warm && chmod -R a+rX /opt/didyma/cache

FROM python:3.11-slim
ARG CPU=generic
ENV NUMBA_CPU_NAME=$CPU NUMBA_CACHE_DIR=/opt/didyma/cache PATH=/opt/didyma/bin:$PATH
COPY --from=build /opt/didyma /opt/didyma
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8000, timeout=3); c.request('GET', '/health'); assert c.getresponse().status == 200"]
ENTRYPOINT ["didyma"]
CMD ["serve", "/models/model.didyma.safetensors", "--host", "0.0.0.0"]
