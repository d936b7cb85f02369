"""The benchmark as a data set of Hugging Face: Parquet files and the card that describes them."""
