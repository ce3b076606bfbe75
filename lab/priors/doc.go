// Package priors fits the physical law of the predictor to engines made of numbers: what a router
// believes of a GPU and a model before it has seen a request of theirs. The result is a table in
// package models/seed, which the serving binary can link; rewrite it with: make golden
package priors
