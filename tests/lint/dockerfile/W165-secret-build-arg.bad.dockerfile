FROM node:22.1 AS base
ARG GITHUB_TOKEN
RUN git clone https://example.com/x
USER 1000
CMD ["claude"]
