int lost;
