// Package models is a registry of learned models: a directory of files, one of which is the champion.
//
// A file NAME.model is one line that says what it is, one line of JSON, its [Manifest], and the
// model, JSON too: data alone, nothing that could run. The first line holds the SHA-256 of all the
// rest, so a cut or changed file is told from a whole one. Files are written under another name,
// synced, and renamed: readers see the old or the new one. champion.json names the champion and
// those before it.
//
// A file that cannot be used is refused with its name and the reason; whoever serves keeps what it
// has. Names are checked and resolved inside the directory alone.
package models
