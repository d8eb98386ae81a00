FROM node:22.1 AS base
RUN --security=insecure make -C /src
USER 1000
CMD ["claude"]
