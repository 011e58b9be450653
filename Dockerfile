# A reranker behind HTTP: no root, no compiler, nothing written at run time.
#
#   docker build -t didyma .
#   docker run --read-only -p 127.0.0.1:8000:8000 -v "$PWD/models:/models:ro" -e DIDYMA_TOKENS=secret didyma
#
# serves models/model.didyma.safetensors; what follows the name of the image is a command of didyma.

FROM python:3.11-slim AS build
WORKDIR /src
RUN apt-get update && apt-get install --yes --no-install-recommends g++
COPY pyproject.toml hatch_build.py CMakeLists.txt constraints.txt README.md LICENSE NOTICE.md ./
COPY src src
RUN python -m venv /opt/didyma \
    && /opt/didyma/bin/pip install --no-cache-dir --constraint constraints.txt ".[serve]"

FROM python:3.11-slim
ENV PATH=/opt/didyma/bin:$PATH
COPY --from=build /opt/didyma /opt/didyma
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8000, timeout=3); c.request('GET', '/health'); assert c.getresponse().status == 200"]
ENTRYPOINT ["didyma"]
CMD ["serve", "/models/model.didyma.safetensors", "--host", "0.0.0.0"]
