# One image with both TVMs, PyTorch, a C compiler, the test tools and JupyterLab.
#
#   PYTHON_VERSION            the base image's Python
#   TORCH                     cpu or cuda: which PyTorch. Both TVMs can use a GPU in either.
#   TORCH_INDEX_URL           where PyTorch comes from; empty: docker/install-packages finds it
#   PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS   as pip knows them
#   UID, GID                  of the user inside: those of the person whose files are mounted
#
# It builds with BuildKit, which keeps downloads in a cache mount, and with the classic builder
# of Compose v1, which knows no mounts. docs/container.md has sizes, times and the reasons.
ARG PYTHON_VERSION=3.12

FROM python:${PYTHON_VERSION}-slim-bookworm AS base
# Classic TVM links what it tunes with cc and c++; current TVM exports libraries with c++.
# Debian's archive keeps one version of a package, so a pinned version stops building one day.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc g++ libc6-dev \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/opt/venv/bin:$PATH

# Only what decides which packages are installed is copied before they are.
FROM base AS sources
ARG TORCH=cpu
ARG TORCH_INDEX_URL=
ARG PIP_INDEX_URL=
ARG PIP_EXTRA_INDEX_URL=
ARG PIP_FIND_LINKS=
ENV TORCH=$TORCH \
    TORCH_INDEX_URL=$TORCH_INDEX_URL \
    PIP_INDEX_URL=$PIP_INDEX_URL \
    PIP_EXTRA_INDEX_URL=$PIP_EXTRA_INDEX_URL \
    PIP_FIND_LINKS=$PIP_FIND_LINKS
WORKDIR /build
COPY scripts/install-torch scripts/
COPY docker/install-packages docker/requirements-lab.txt docker/
COPY pyproject.toml constraints.txt requirements-classic.txt ./

# The classic builder refuses --mount, but only when it gets there: as triggers these two lines
# are run by the stage that is built from them alone. TARGETOS is `linux` under BuildKit and
# unset under the classic builder.
FROM sources AS install-plain
ONBUILD RUN docker/install-packages --no-cache
FROM sources AS install-linux
ONBUILD RUN --mount=type=cache,target=/root/.cache,sharing=locked docker/install-packages
# hadolint ignore=DL3006
FROM install-${TARGETOS:-plain} AS packages

FROM base AS runtime
ARG UID=1000
ARG GID=1000
# --non-unique: some systems number people's groups below 1000, where Debian has its own.
RUN if [ "$UID" = 0 ]; then echo "UID=0: the container's user cannot be root" >&2; exit 1; fi \
    && groupadd --non-unique --gid "$GID" learner \
    && useradd --non-unique --uid "$UID" --gid "$GID" --create-home --shell /bin/bash \
        --no-log-init learner
COPY --from=packages --chown=learner:learner /opt/venv /opt/venv
COPY docker/entrypoint docker/lab /usr/local/bin/
COPY docker/greeting.py docker/healthcheck.py /opt/tvm-practice/
COPY docker/ipython_startup.py /home/learner/.ipython/profile_default/startup/00-engines.py
# The course itself is mounted at /workspace. These few files make the image of use without it.
COPY tvm_practice/__init__.py /opt/tvm-practice/lib/tvm_practice/
COPY tvm_practice/engines /opt/tvm-practice/lib/tvm_practice/engines
COPY tvm_practice/farm /opt/tvm-practice/lib/tvm_practice/farm
RUN printf '/workspace\n/opt/tvm-practice/lib\n' \
        > "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tvm-practice.pth" \
    && echo 'python /opt/tvm-practice/greeting.py' >> /home/learner/.bashrc \
    && install --directory --owner learner --group learner /workspace /home/learner/.cache \
        /home/learner/.cache/pip /home/learner/records \
    && chown -R learner:learner /home/learner /opt/tvm-practice
USER $UID:$GID
# Also compiles the stand-in for the CUDA driver that classic TVM needs on a machine without one.
RUN python -m tvm_practice.engines --json > /opt/tvm-practice/engines.json \
    && if [ "$(uname -m)" = x86_64 ] && grep unavailable /opt/tvm-practice/engines.json; then exit 1; fi
WORKDIR /workspace
# What the driver's libraries are mounted for when the container is given a GPU.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    PYTHONUNBUFFERED=1 \
    TVM_PRACTICE_RECORDS=/home/learner/records
# The first probe imports both engines; later ones look for the mark that it left.
HEALTHCHECK --interval=30s --timeout=60s --start-period=60s --retries=3 \
    CMD ["nice", "-n", "19", "python", "/opt/tvm-practice/healthcheck.py"]
ENTRYPOINT ["entrypoint"]
CMD ["bash"]
