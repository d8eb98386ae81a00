FROM node:22.1 AS base
ENV ALLOWED_DOMAINS="api.anthropic.com"
USER 1000
CMD ["claude"]
