FROM node:22.1 AS build
USER 1000
RUN make

FROM node:22.1
COPY --from=build /out /app
CMD ["claude"]
