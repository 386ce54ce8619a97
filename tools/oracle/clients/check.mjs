// What every client's checks share: rows with a name, one line each, a count at the end.
let failed = 0;
let passed = 0;

export async function row(name, run) {
  try {
    const told = await run();
    passed += 1;
    console.log(`  ok    ${name}${told ? ` (${told})` : ''}`);
  } catch (error) {
    failed += 1;
    console.log(`  WRONG ${name}: ${error.stack || error}`);
  }
}

export function end(what) {
  console.log(`${what}: ${passed} right, ${failed} wrong`);
  process.exitCode = failed ? 1 : 0;
}
