// Package cluster says who is here and founds the group.
package cluster
