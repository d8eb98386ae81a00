FROM node:22.1 AS base
ENV ALLOWED_DOMAINS="api.anthropic.com,transfer.sh"
USER 1000
CMD ["claude"]
