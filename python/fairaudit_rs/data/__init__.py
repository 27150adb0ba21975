"""Where rows come from, and what they are: columns with roles, groups, labels, cells."""
