// Package seed knows what a router may believe of a class of endpoints before it has learned
// anything: laws fitted to engines with measured step times, and for other models and GPUs the
// nearest of them scaled by arithmetic and bandwidth. Learning takes over within some hundred
// requests; the prior decides how the first of them are placed.
package seed
