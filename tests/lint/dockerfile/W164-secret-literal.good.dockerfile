FROM node:22.1 AS base
ENV NODE_ENV=production \
    # the key of the service
    API_TOKEN_FILE=/run/secrets/api
USER 1000
CMD ["claude"]
