.PHONY: help build run serve test test-race mutants lint types generate vendor docs bench bench-live bench-map story

# Build tools have a module of their own, so that the program's stays small. The first use compiles them: minutes, once.
TOOL := go tool -modfile=$(CURDIR)/tools/go.mod

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

build: ## the program, as bin/seatfence
	@go build -o bin/seatfence ./cmd/seatfence

run: build ## everything on this machine: Postgres, Redis, mail sink, demo, server
	@exec bin/seatfence dev

serve: build ## a server; settings from the environment (docs/config.md)
	@exec bin/seatfence serve

# One package at a time: most start a Postgres of their own, and look at the clock.
test: mutants ## the mutants, then every test, on private Postgres and Redis
	go test -tags failpoint -p 1 -timeout 10m ./...

test-race: ## every test under the race detector, which needs a C compiler
	CGO_ENABLED=1 go test -race -tags failpoint -p 1 -timeout 20m ./...

mutants: ## break the program in one place at a time; every break must fail a test
	@go run ./internal/mutants

lint: types ## vet, staticcheck, formatting, generated code, directions of imports
	go vet ./...
	go vet -tags failpoint ./...
	cd tools/livebench && go vet ./...
	$(TOOL) staticcheck -tests=false ./...
	$(TOOL) staticcheck -tags failpoint ./...
	@unformatted=$$($(TOOL) gofumpt -l .) && test -z "$$unformatted" || { echo "not formatted:" $$unformatted; exit 1; }
	$(TOOL) sqlc diff
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && cd internal/httpapi && \
		sed "s|^output:.*|output: $$dir/api.gen.go|" oapi-codegen.yaml > $$dir/config.yaml && \
		$(TOOL) oapi-codegen -config $$dir/config.yaml openapi.yaml && diff -u api.gen.go $$dir/api.gen.go
	go test ./internal/archtest
	go mod verify

# The one tool that comes from npm; who has none leaves it to CI.
types: ## the types of the scripts, which stand in their comments
	@if command -v npm >/dev/null; then npm exec --yes --package typescript@7.0.2 -- tsc --project tools; \
	else echo "no npm: the types of the scripts are not checked"; fi

generate: ## Go from db/queries/*.sql and openapi.yaml, and formatting
	$(TOOL) sqlc generate
	go generate -run oapi-codegen ./internal/httpapi
	$(TOOL) gofumpt -w .

vendor: ## preact and htm as one file of the pages, when a version changes
	@sh tools/vendor.sh

docs: ## fetch the API documentation's viewer again
	go generate -run vendor ./internal/httpapi

bench: ## bookings and holds a second, next to pgbench on the same cluster
	@go run ./cmd/seatload bench

# A module of its own, because of the library that it compares with.
bench-live: ## a live map to 5,000 viewers, next to centrifuge under the same load
	@cd tools/livebench && go run .

bench-map: ## how fast a browser draws 1,000 to 50,000 seats
	@go test ./internal/webui -run - -bench SeatMap -benchtime 3x

story: ## the late request, on two real servers, as it happens
	@go run ./cmd/seatload story
