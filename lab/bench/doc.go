// Package bench measures what the service costs: a decision, an exchange over ext_proc, an idle second, a
// thousand clients.
//
// Where the service alone is measured, it runs as a child process: the tool starts itself again
// ([Attend] is the child's side) and reads the child's own account of its processor time, so that the
// load and the engines of numbers, which stay in the parent, do not count. Times are wall times of the
// machine at hand: they mean something beside other figures of the same machine only.
package bench
