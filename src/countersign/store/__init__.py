"""The store: catalog, releases, artifacts, codes and libraries of many organisations."""
