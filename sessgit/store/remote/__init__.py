"""Git's own remotes of a store, and how git is run to reach them."""
