FROM node:22.1 AS base
ENV SANDBOX_NETWORK_ALLOW api.anthropic.com
USER 1000
CMD ["claude"]
