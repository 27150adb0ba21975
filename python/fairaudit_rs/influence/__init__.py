"""The influence lens: find the features that act as proxies for a group (Wang et al. 2019)."""
