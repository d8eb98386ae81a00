FROM node:22.1 AS base
RUN --network=host \
    make -C /src
USER 1000
CMD ["claude"]
