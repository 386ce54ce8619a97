int x; // why
