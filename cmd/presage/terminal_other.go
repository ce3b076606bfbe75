//go:build !unix

package main

import "os"

// terminalWidth knows no terminals here.
func terminalWidth(*os.File) (int, bool) { return 0, false }
