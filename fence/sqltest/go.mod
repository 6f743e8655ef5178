module github.com/mortise-lock/mortise/fence/sqltest

go 1.26.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/mortise-lock/mortise v0.0.0
	modernc.org/sqlite v1.61.1
)

replace github.com/mortise-lock/mortise => ../..
