"""Files of rows: svmlight, CSV, Parquet and .npz text or tables, and dataset folders."""
