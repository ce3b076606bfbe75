//go:build unix && !linux

package demo

import "syscall"

// ownGroup puts a process into a group of its own. It outlives a parent that is killed.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
