FROM node:22.1 AS base
COPY .env package.json /app/
USER 1000
CMD ["claude"]
