// Package session holds both ends of a lease. (Being written.)
package session
