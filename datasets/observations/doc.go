// Package observations writes and reads records of finished requests as files, for use elsewhere:
// Parquet, one column for each fact, or JSON, one object a line. Both hold the same, and both are
// read back; which one a file is, its content says.
//
// Times are milliseconds in columns whose names end in _ms; what is unknown is null, which is not
// zero. x is the vector of features (their names, in order, are in the Parquet file's metadata under
// "presage.features"), null where a feature is unknown. The ledger and the last scrape of the picked
// endpoint are left out but for what of them is in x.
package observations
