"""Linear queries: blocks on one attribute, products of them on several."""
