// Package architecture guards the structure of the repository: its floors, the one home of each
// heavy dependency, documentation, and the size of files. It has tests only.
package architecture
