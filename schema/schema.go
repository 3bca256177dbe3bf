// Package schema is what is on disk: the goose migrations, embedded in the
// binary. Everything that must never happen twice has a UNIQUE constraint
// here, and every state a CHECK, so that a mistake in the code above fails in
// the database instead of in the books.
//
// Times are INTEGER milliseconds since 1970 in UTC, money is INTEGER in
// Stripe's minor unit beside a lower-case currency, tables are STRICT.
package schema

import "embed"

// FS holds the migrations, NNNNN_name.sql, in the order in which goose runs
// them. A migration that has landed is never edited; the next one corrects it.
//
//go:embed *.sql
var FS embed.FS
