//go:build !race

package datasets

const raced = false
