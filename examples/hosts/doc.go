// Package hosts has the code for projects that have an interface for locks or for a leader, but no
// module that could be imported for it. The code stands in a build of the project that you make:
//
//	gitea    the locks of Gitea over several instances, without Redis
//	grafana  alert rules that are evaluated by one Grafana of several
//
// Each file names the interface with its file and commit, and repeats its methods. The tests run
// the code beside three nodes, one of which is killed.
package hosts
