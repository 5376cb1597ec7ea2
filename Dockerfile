# README's two commands on Debian: the first builds Abide and grows a pattern, the second installs what the tests need and runs
# all of them.
#
#   docker build --tag abide .
#   docker run --rm --volume "$PWD:/out" --workdir /out abide abide run wave --steps 600 --every 4 --output wave.gif
FROM rust:1-bookworm

# The commit, for the results of benchmarks: docker build --build-arg ABIDE_COMMIT="$(git describe --always --dirty)"
ARG ABIDE_COMMIT=unknown
ENV ABIDE_COMMIT=$ABIDE_COMMIT

WORKDIR /abide
COPY . .

RUN cargo run --release --locked -- run gray-scott --steps 5000 --output /tmp/spots.png
RUN cargo xtask test

ENV PATH=/abide/target/release:$PATH
CMD ["abide", "--help"]
