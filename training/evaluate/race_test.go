//go:build race

package evaluate

const racing = true
