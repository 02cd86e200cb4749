"""From text to ids and back: tokenizers built of whatever files a checkpoint has, and its chat template."""
