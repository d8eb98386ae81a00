ARG TAG=22
FROM --platform=linux/amd64 node:latest AS base
USER 1000
CMD ["claude"]
