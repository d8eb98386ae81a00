FROM node:22.1 AS base
RUN make -C /src
USER 1000
CMD ["claude"]
