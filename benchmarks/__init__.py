"""Each module is one command. This is a package, since an installed library may bring one of the same name (Opacus does)."""
