# zoo for CPUs: docker build -t zoo . ; docker run --rm -v "$PWD:/work" zoo table report.pdf -o tables.xlsx
ARG BASE=python:3.13-slim

FROM $BASE AS build
ARG EXTRAS=pdf,tables,chat
COPY pyproject.toml hatch_build.py README.md LICENSE /src/
COPY zoo /src/zoo
COPY parity /src/parity
COPY docs/evidence.json /src/docs/
RUN python -m venv /opt/zoo \
 && /opt/zoo/bin/pip install --no-cache-dir --no-compile "/src[$EXTRAS]" \
 && /opt/zoo/bin/pip uninstall --yes pip

FROM $BASE
COPY --from=build /opt/zoo /opt/zoo
ENV PATH=/opt/zoo/bin:$PATH HF_HOME=/models PYTHONDONTWRITEBYTECODE=1
RUN useradd --uid 10001 --create-home zoo && mkdir /models /work && chown zoo /models /work
USER zoo
VOLUME /models
WORKDIR /work
ENTRYPOINT ["zoo"]
CMD ["--help"]
