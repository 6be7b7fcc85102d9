//! `revocations`: the list of withdrawn keys, out of one relay and into another that shares its secret.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use clap::Subcommand;
use serde::{Deserialize, Serialize};

use super::{AdminFlags, admin_api::AdminApi, exit::CommandError, output};

/// `revocations`.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Print the list as JSON
    Export(Export),
    /// Join a list in; nothing that is refused today is let in again by it
    Import(Import),
}

/// `revocations export`.
#[derive(clap::Args, Debug)]
pub(crate) struct Export {
    /// Write it there instead of to standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    admin: AdminFlags,
}

/// `revocations import`.
#[derive(clap::Args, Debug)]
pub(crate) struct Import {
    /// An exported list, or - for standard input
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminFlags,
}

#[derive(Serialize, Deserialize)]
struct Imported {
    imported: usize,
}

/// Does it.
pub(crate) async fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Export(args) => export(args).await,
        Command::Import(args) => import(args).await,
    }
}

async fn export(args: Export) -> Result<(), CommandError> {
    let list = AdminApi::find(&args.admin.flags)?
        .get_text("/revocations")
        .await?;
    let Some(path) = args.output else {
        return output::print(&list);
    };
    fs::write(&path, list).map_err(|error| CommandError::failed(format!("{}: {error}", path.display())))
}

async fn import(args: Import) -> Result<(), CommandError> {
    let list = read(&args.file)
        .map_err(|error| CommandError::failed(format!("{}: {error}", args.file.display())))?;
    let imported: Imported = AdminApi::find(&args.admin.flags)?
        .put_text("/revocations", list)
        .await?;
    if args.json {
        return output::print_json(&imported);
    }
    output::print(&format!("{} entries joined in", imported.imported))
}

fn read(file: &Path) -> std::io::Result<String> {
    if file != Path::new("-") {
        return fs::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}
