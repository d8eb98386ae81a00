FROM node:22.1 AS base
COPY package.json /app/
USER 1000
CMD ["claude"]
