FROM node:22.1 AS base
ENV NODE_ENV=production \
    # the key of the service
    API_TOKEN=correct-horse-battery
USER 1000
CMD ["claude"]
