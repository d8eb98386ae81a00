FROM node:22.1 AS build
RUN make

FROM node:22.1
COPY --from=build /out /app
USER 1000
CMD ["claude"]
