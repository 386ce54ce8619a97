// Groups of rows with a name: one line for each group, one for each row that is wrong. A group is one
// check of the count at the end, and has failed where a row of it has.
let passed = 0;
let failed = 0;

/** Throws where it does not hold. */
export function must(holds, message) {
  if (!holds) throw new Error(message);
}

function wrongOf([row, run]) {
  try {
    run();
    return [];
  } catch (error) {
    return [`${row}: ${error.message}`];
  }
}

/** rows: [[name, run], ...]; run throws where something is wrong. */
export function group(name, rows) {
  const wrong = rows.length ? rows.flatMap(wrongOf) : ['it has no rows'];
  for (const message of wrong) console.log(`  WRONG ${name}: ${message}`);
  if (wrong.length) {
    failed += 1;
  } else {
    passed += 1;
    console.log(`  ok    ${name} (${rows.length})`);
  }
}

export function end() {
  console.log(`helm: ${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}
