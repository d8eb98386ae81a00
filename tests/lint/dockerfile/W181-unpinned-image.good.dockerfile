ARG TAG=22
FROM --platform=linux/amd64 node:${TAG} AS base
USER 1000
CMD ["claude"]
