"""Pages about connections and deliverability."""
