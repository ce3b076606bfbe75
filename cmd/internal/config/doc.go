// Package config reads the service's configuration file. It is strict: an unknown key, a number
// without its unit, an impossible value or a reference to something that is not there is an error
// with file, line, key, reason and remedy, and all errors of a file are reported at once.
//
// One table (options.go) names every key with its kind, limits, default and meaning. It decodes the
// file, says what is wrong with it, and prints the reference page.
//
// The file is YAML without anchors, aliases, tags and tab indentation, at most 64 KiB.
package config
